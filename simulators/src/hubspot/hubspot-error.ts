export class HubspotError extends Error {
  readonly status: number
  readonly category: string

  constructor(status: number, category: string, message: string) {
    super(message)
    this.status = status
    this.category = category
  }
}
