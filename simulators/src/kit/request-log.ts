/** A request that a simulator received. */
export interface LoggedRequest {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly body: string
  readonly atMs: number
  /** The response status; 0 while pending. */
  status: number
}

/** Every request in order of arrival, so that a test can count them. */
export class RequestLog {
  readonly entries: LoggedRequest[] = []

  add(request: Request, body: string, atMs: number): LoggedRequest {
    const url = new URL(request.url)
    const entry = {
      method: request.method,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      body,
      atMs,
      status: 0,
    }
    this.entries.push(entry)
    return entry
  }

  count(path?: string | RegExp): number {
    if (path === undefined) return this.entries.length
    return this.entries.filter((entry) => (typeof path === 'string' ? entry.path === path : path.test(entry.path)))
      .length
  }

  clear(): void {
    this.entries.length = 0
  }
}
