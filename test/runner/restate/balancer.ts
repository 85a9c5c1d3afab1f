import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net'

/** A load balancer: each connection goes to the next target. */
export class Balancer {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  static async open(urls: () => string[]): Promise<Balancer> {
    const balancer = new Balancer(urls)
    await new Promise<void>((resolve) => balancer.#server.listen(0, '127.0.0.1', resolve))
    return balancer
  }

  private constructor(urls: () => string[]) {
    let turn = 0
    this.#server = createServer((incoming) => {
      const known = urls()
      const url = known[turn++ % known.length]
      if (url === undefined) return incoming.destroy()
      const outgoing = connect(Number(new URL(url).port), '127.0.0.1')
      for (const [one, other] of [
        [incoming, outgoing],
        [outgoing, incoming],
      ] as const) {
        this.#sockets.add(one)
        one.on('error', () => {})
        one.once('close', () => {
          this.#sockets.delete(one)
          other.destroy()
        })
        one.pipe(other)
      }
    })
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
