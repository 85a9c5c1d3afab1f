import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { verifyStandardWebhook } from '../../webhooks/verify/standard.ts'

/** One message in this many gets a 503, to demonstrate the retry. */
const FAIL_EVERY_MESSAGES = 50

/** Receives the webhooks of the demo and verifies their signatures. */
export class DemoReceiver {
  readonly url: string
  readonly #close: () => Promise<void>
  #verified = 0
  #refused = 0

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url
    this.#close = close
  }

  static async open(secret: string): Promise<DemoReceiver> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request
        .on('error', () => {})
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => {
          response
            .writeHead(
              receiver.#verifyMessage(request.headers as Record<string, string>, Buffer.concat(chunks), secret),
            )
            .end()
        })
    })
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
    const receiver = new DemoReceiver(
      `http://127.0.0.1:${(server.address() as AddressInfo).port}/changes`,
      () =>
        new Promise((resolve) => {
          server.close(() => resolve())
          server.closeAllConnections()
        }),
    )
    return receiver
  }

  /** Messages with a valid signature. */
  get verified(): number {
    return this.#verified
  }

  /** Messages with an invalid signature. */
  get refused(): number {
    return this.#refused
  }

  async close(): Promise<void> {
    await this.#close()
  }

  #verifyMessage(headers: Record<string, string>, rawBody: Uint8Array, secret: string): number {
    try {
      verifyStandardWebhook({ headers, rawBody }, { secrets: [secret], now: Date.now() })
    } catch {
      this.#refused++
      return 401
    }
    return ++this.#verified % FAIL_EVERY_MESSAGES === 0 ? 503 : 204
  }
}
