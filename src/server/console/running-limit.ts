import { HttpError } from '../http-error.ts'

/** Bounds the queries and exports that run at once: each may occupy a connection, a process or a file. */
export class RunningLimit {
  readonly #max: number
  #running = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Throws if too many run. The result ends one; calling it again has no effect. */
  begin(): () => void {
    if (this.#running >= this.#max)
      throw new HttpError('RATE_LIMIT_EXCEEDED', 'Too many queries and exports are running. Retry in a few seconds.', {
        headers: { 'retry-after': '5' },
      })
    this.#running++
    let isOver = false
    return () => {
      if (!isOver) this.#running--
      isOver = true
    }
  }
}
