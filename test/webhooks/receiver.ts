import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface ReceivedMessage {
  readonly id: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever was sent; the assertions say what it is
  readonly item: Record<string, any>
}

type Answer = (received: ReceivedMessage, response: ServerResponse) => void

/** A webhook receiver on loopback; closed with the test. */
export class Receiver {
  readonly received: ReceivedMessage[] = []
  readonly url: string
  readonly port: number
  answer: Answer
  readonly #waiting = new Set<() => void>()

  private constructor(server: Server, answer: Answer) {
    this.port = (server.address() as AddressInfo).port
    this.url = `http://127.0.0.1:${this.port}/hook`
    this.answer = answer
  }

  static async open(answer: Answer = (_, response) => void response.writeHead(204).end()): Promise<Receiver> {
    let receiver: Receiver
    const server = createServer((request, response) => {
      const pieces: Buffer[] = []
      request.on('data', (piece: Buffer) => pieces.push(piece))
      request.on('end', () => {
        const body = Buffer.concat(pieces).toString()
        const received = {
          id: String(request.headers['webhook-id']),
          headers: request.headers,
          body,
          item: JSON.parse(body || '{}') as ReceivedMessage['item'],
        }
        receiver.received.push(received)
        receiver.answer(received, response)
        for (const wake of receiver.#waiting) wake()
        receiver.#waiting.clear()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    receiver = new Receiver(server, answer)
    return receiver
  }

  /** Waits until the received messages match. */
  async until(fits: (received: readonly ReceivedMessage[]) => boolean): Promise<void> {
    while (!fits(this.received)) await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }
}
