import { isCutOff } from './cut-off.ts'
import type { Simulator } from './simulator.ts'

/** A fetch that reaches the simulator only. An aborted signal rejects at once, as in the real one. */
export function createSimulatorFetch(simulator: Simulator): typeof fetch {
  return async (input, init) => {
    const request = new Request(input as string | URL | Request, init)
    request.signal.throwIfAborted()
    const aborted = new Promise<never>((_resolve, reject) => {
      request.signal.addEventListener('abort', () => reject(request.signal.reason as Error), { once: true })
    })
    const response = await Promise.race([simulator.handle(request), aborted])
    return isCutOff(response) ? withBodyError(response) : response
  }
}

async function withBodyError(response: Response): Promise<Response> {
  const half = new Uint8Array(await response.arrayBuffer())
  let sent = false
  const body = new ReadableStream({
    pull(controller) {
      if (sent) return controller.error(new TypeError('terminated'))
      sent = true
      controller.enqueue(half)
    },
  })
  return new Response(body, { status: response.status, headers: response.headers })
}
