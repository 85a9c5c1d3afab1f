import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

/** A proxy for an S3 server that ignores `If-None-Match`: it refuses such a PUT itself if the object exists. */
export interface ConditionalProxy {
  readonly endpoint: string
  /** Called before a request is passed on; `true` drops the connection instead. */
  intercept: ((method: string, path: string) => 'before' | 'after' | null) | null
  /** Whether the condition is enforced. */
  isEnforced: boolean
  close(): Promise<void>
}

export async function startConditionalProxy(target: string): Promise<ConditionalProxy> {
  // One PUT at a time, so that the check and the write are one step.
  let queue: Promise<unknown> = Promise.resolve()
  const proxy = { intercept: null, isEnforced: true } as {
    -readonly [Name in keyof ConditionalProxy]: ConditionalProxy[Name]
  }
  const server: Server = createServer((incoming, response) => {
    const handle = async (): Promise<void> => {
      const fault = proxy.intercept?.(incoming.method ?? '', incoming.url ?? '') ?? null
      if (fault === 'before') return void incoming.socket.destroy()
      const body = await readBody(incoming)
      if (proxy.isEnforced && incoming.method === 'PUT' && incoming.headers['if-none-match'] === '*') {
        const { status } = await send(target, { method: 'HEAD', url: incoming.url, headers: {} }, null)
        if (status === 200)
          return respond(response, {
            status: 412,
            headers: { 'content-type': 'application/xml' },
            body: Buffer.from('<Error><Code>PreconditionFailed</Code><Message>The object exists.</Message></Error>'),
          })
      }
      const answer = await send(target, incoming, body)
      if (fault === 'after') return void incoming.socket.destroy()
      respond(response, answer)
    }
    queue = queue.then(handle).catch(() => void response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(proxy, {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

interface Answer {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

function send(
  target: string,
  { method, url, headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>,
  body: Buffer | null,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { host, 'if-none-match': _condition, ...rest } = headers
    const outgoing = request(
      new URL(url ?? '/', target),
      { method, headers: { ...rest, ...(host !== undefined && { host }) } },
      (response) => {
        readBody(response).then(
          (answered) => resolve({ status: response.statusCode ?? 500, headers: response.headers, body: answered }),
          reject,
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body ?? undefined)
  })
}

function respond(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, headers)
  response.end(body)
}

async function readBody(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
