/** A parameter that the API refuses, in the API's own wording. */
export class XError extends Error {
  readonly parameter: string
  readonly value: string

  constructor(parameter: string, value: string, message: string) {
    super(message)
    this.parameter = parameter
    this.value = value
  }
}
