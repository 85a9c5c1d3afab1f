import { createRequire } from 'node:module'
import { connect, type Socket } from 'node:net'

const require = createRequire(import.meta.url)
const { requests } = require('kafkajs/src/protocol/requests') as {
  requests: Record<
    string,
    {
      protocol(options: {
        version: number
      }): (given: object) => { request: { apiVersion: number }; response: { decode(bytes: Buffer): Promise<any> } }
    }
  >
}
const encode = require('kafkajs/src/protocol/request') as (given: object) => Promise<{ buffer: Buffer }>

export type WireApi =
  | 'ApiVersions'
  | 'Metadata'
  | 'ListOffsets'
  | 'Fetch'
  | 'Produce'
  | 'InitProducerId'
  | 'AddPartitionsToTxn'
  | 'EndTxn'

/** One connection. kafkajs's own code writes requests and reads responses, in any version it knows. */
export class WireClient implements Disposable {
  readonly #socket: Socket
  /** Resolves when the broker closes the connection. */
  readonly ended: Promise<void>
  /** By request number, in the order of the responses. */
  readonly answered: number[] = []
  #received = Buffer.alloc(0)
  #asked = 0
  readonly #waiting = new Set<() => void>()

  private constructor(socket: Socket) {
    this.#socket = socket
    this.ended = new Promise((resolve) => void socket.once('close', () => resolve()))
    const wake = () => this.#waiting.forEach((one) => one())
    socket
      .on('error', () => {})
      .on('close', wake)
      .on('data', (chunk: Buffer) => {
        this.#received = Buffer.concat([this.#received, chunk])
        wake()
      })
  }

  static async connect(address: string): Promise<WireClient> {
    const [host, port] = address.split(':')
    const socket = connect(Number(port), host)
    await new Promise<void>((resolve, reject) => void socket.once('connect', resolve).once('error', reject))
    return new WireClient(socket)
  }

  /** The raw response, whatever error codes it contains. */
  async ask(api: WireApi, version: number, given: object = {}): Promise<any> {
    const { request, response } = requests[api]!.protocol({ version })(given)
    if (request.apiVersion !== version) throw new Error(`${api} was sent in version ${request.apiVersion}.`)
    const correlationId = ++this.#asked
    this.send((await encode({ correlationId, clientId: 'test', request })).buffer)
    const answer = await this.answer(correlationId)
    return response.decode(answer)
  }

  send(bytes: Buffer): void {
    this.#socket.write(bytes)
  }

  /** The response to this request, once it is next in the stream. */
  async answer(correlationId: number): Promise<Buffer> {
    for (;;) {
      const length = this.#received.length >= 4 ? this.#received.readInt32BE() : Infinity
      if (
        this.#received.length >= 8 &&
        this.#received.readInt32BE(4) === correlationId &&
        this.#received.length >= 4 + length
      ) {
        const answer = this.#received.subarray(8, 4 + length)
        this.#received = this.#received.subarray(4 + length)
        this.answered.push(correlationId)
        for (const wake of this.#waiting) wake()
        return answer
      }
      if (this.#socket.destroyed)
        throw new Error(`The broker closed the connection after ${this.#received.length} bytes.`)
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waiting.delete(wake)
          resolve()
        }
        this.#waiting.add(wake)
      })
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }
}
