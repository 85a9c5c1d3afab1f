import { createServer, type Server, type Socket } from 'node:net'
import { APIS, type KafkaApiName } from './apis.ts'
import { writeApiVersions } from './apis/api-versions.ts'
import type { Cluster } from './cluster.ts'
import { WireReader } from './wire-reader.ts'
import { WireWriter } from './wire-writer.ts'

/** `socket.request.max.bytes`, with its default. */
const REQUEST_BYTES_MAX = 104_857_600

/** One broker on a local port. It does not keep the process running. */
export class Broker {
  readonly id: number
  /** Delays every response by this much. */
  delayMs = 0
  readonly #cluster: Cluster
  readonly #idleMs: number
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #port = 0

  constructor(id: number, cluster: Cluster, { idleMs }: { readonly idleMs: number }) {
    this.id = id
    this.#cluster = cluster
    this.#idleMs = idleMs
  }

  get port(): number {
    return this.#port
  }

  /** Restarts on the same port. */
  async start(): Promise<void> {
    if (this.#server !== undefined) return
    const server = createServer((socket) => this.#serve(socket))
    this.#server = server
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(this.#port, '127.0.0.1', resolve))
    server.unref()
    this.#port = (server.address() as { port: number }).port
  }

  /** Closes its connections and accepts no new ones. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    for (const socket of this.#sockets) socket.destroy()
    if (server !== undefined) await new Promise((resolve) => server.close(resolve))
  }

  /**
   * One request after the other, as a broker does: the second of a connection is not read before the first is answered.
   */
  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    const gone = new AbortController()
    let received = Buffer.alloc(0)
    let last: Promise<void> = Promise.resolve()
    const hear = (chunk: Buffer): void => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 4) {
        const length = received.readInt32BE()
        if (length < 0 || length > REQUEST_BYTES_MAX) return void socket.destroy()
        if (received.length < 4 + length) return
        const frame = received.subarray(4, 4 + length)
        received = received.subarray(4 + length)
        // A malformed request ends the connection: the protocol has no other answer.
        last = last.then(() => this.#respond(frame, socket, gone.signal)).catch(() => void socket.destroy())
      }
    }
    socket.unref().setTimeout(this.#idleMs, () => socket.destroy())
    socket
      .on('data', hear)
      .on('error', () => {})
      .on('close', () => {
        this.#sockets.delete(socket)
        gone.abort(new Error('The client disconnected.'))
      })
  }

  async #respond(frame: Buffer, socket: Socket, signal: AbortSignal): Promise<void> {
    // Data behind a request that ended the connection is ignored.
    if (socket.destroyed) return
    const body = new WireReader(frame)
    const [key, version, correlation] = [body.int16(), body.int16(), body.int32()]
    const name = (Object.keys(APIS) as KafkaApiName[]).find((candidate) => APIS[candidate].key === key)
    if (name === undefined) throw new Error(`API ${key} is not supported.`)
    const [least, most] = APIS[name].versions
    const isSpoken = version >= least && version <= most
    if (!isSpoken && name !== 'apiVersions') throw new Error(`Version ${version} of ${name} is not supported.`)
    const fault = this.#cluster.faults.take(name)
    if (fault?.kind === 'cut' && fault.where === 'before') return void socket.destroy()
    const delayMs = this.delayMs + (fault?.kind === 'slow' ? fault.ms : 0)
    if (delayMs > 0) await this.#cluster.clock.sleep(delayMs, signal)
    let answer: WireWriter | null
    if (isSpoken) {
      body.nullableString()
      answer = await APIS[name].respond({
        version,
        body,
        broker: this.id,
        cluster: this.#cluster,
        plannedError: fault?.kind === 'error' ? fault.error : undefined,
        signal,
      })
    } else answer = writeApiVersions(Object.values(APIS), 0, 'UNSUPPORTED_VERSION')
    if (answer === null) return
    const bytes = new WireWriter().nullableBytes(new WireWriter().int32(correlation).raw(answer.bytes).bytes).bytes
    const isCut = fault?.kind === 'cut'
    await new Promise<void>(
      (resolve) => void socket.write(isCut ? bytes.subarray(0, bytes.length >> 1) : bytes, () => resolve()),
    )
    if (isCut) socket.destroy()
  }
}
