/** An error with a code of Tidemark's error table, which recognises errors by their code and not by their class. */
export class SimulatorError extends Error {
  override readonly name = 'SyncError'
  readonly code: 'PACKAGE_UNFIT' | 'SOURCE_UNAVAILABLE'

  constructor(code: SimulatorError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
