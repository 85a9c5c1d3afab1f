import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { isCutOff } from './cut-off.ts'
import type { Simulator } from './simulator.ts'

/** A simulator that is served on a local port. */
export interface SimulatorServer {
  readonly url: string
  /** Answered or pending. */
  readonly requests: number
  close(): Promise<void>
}

/** Serves the simulator on a loopback socket, for real clients and for demos. */
export async function serve(
  simulator: Simulator,
  options: { readonly port?: number } = {},
): Promise<SimulatorServer & AsyncDisposable> {
  let requests = 0
  const server = createServer((incoming, outgoing) => {
    requests++
    respond(simulator, incoming, outgoing).catch((error: unknown) => {
      if (!outgoing.headersSent) outgoing.writeHead(500, { 'content-type': 'text/plain' })
      outgoing.end(String(error))
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    get requests() {
      return requests
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function respond(simulator: Simulator, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  const method = incoming.method ?? 'GET'
  const gone = new AbortController()
  outgoing.once('close', () => gone.abort())
  const request = new Request(`http://${incoming.headers.host ?? '127.0.0.1'}${incoming.url ?? '/'}`, {
    method,
    headers,
    signal: gone.signal,
    ...(method === 'GET' || method === 'HEAD' || chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
  })
  const response = await simulator.handle(request)
  const body = Buffer.from(await response.arrayBuffer())
  const cut = isCutOff(response)
  outgoing.writeHead(response.status, {
    ...Object.fromEntries(response.headers),
    'content-length': cut ? body.length * 2 : body.length,
  })
  if (!cut) return void outgoing.end(body)
  outgoing.write(body, () => outgoing.destroy())
}
