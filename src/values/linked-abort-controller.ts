/**
 * An abort controller that also follows another signal until it is unlinked. Replaces `AbortSignal.any`, which in many
 * versions of Node leaks memory on a long-lived signal for every request, message and turn.
 */
export class LinkedAbortController {
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal | undefined

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer
    outer?.addEventListener('abort', this.#abortFromOuter)
    if (outer?.aborted === true) this.#abortFromOuter()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason)
  }

  unlink(): void {
    this.#outer?.removeEventListener('abort', this.#abortFromOuter)
  }

  readonly #abortFromOuter = (): void => this.#controller.abort(this.#outer?.reason)
}
