const STATUS: Readonly<Record<string, number>> = {
  INVALID_SESSION_ID: 401,
  REQUEST_LIMIT_EXCEEDED: 403,
  INSUFFICIENT_ACCESS: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  API_VERSION_MISMATCH: 409,
  SERVER_UNAVAILABLE: 503,
  UNKNOWN_EXCEPTION: 500,
}

/** Salesforce returns every error as an array of one. */
export class SalesforceError extends Error {
  readonly errorCode: string

  constructor(errorCode: string, message: string) {
    super(message)
    this.errorCode = errorCode
  }

  get status(): number {
    return STATUS[this.errorCode] ?? 400
  }

  get body(): unknown {
    return [{ message: this.message, errorCode: this.errorCode }]
  }
}
