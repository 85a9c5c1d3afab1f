export interface StripeErrorDetails {
  readonly code?: string
  readonly param?: string
}

export class StripeError extends Error {
  readonly status: number
  readonly details: StripeErrorDetails

  constructor(status: number, message: string, details: StripeErrorDetails = {}) {
    super(message)
    this.status = status
    this.details = details
  }

  get body(): unknown {
    const { code } = this.details
    return {
      error: {
        ...this.details,
        ...(code === undefined ? {} : { doc_url: `https://stripe.com/docs/error-codes/${code.replaceAll('_', '-')}` }),
        message: this.message,
        type: this.status >= 500 ? 'api_error' : 'invalid_request_error',
      },
    }
  }
}
