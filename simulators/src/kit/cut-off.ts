const cutOffResponses = new WeakSet<Response>()

/** Breaks the connection after this body: a socket is destroyed, a fetch body ends in an error. */
export function markCutOff(response: Response): Response {
  cutOffResponses.add(response)
  return response
}

/** Whether the connection breaks after the body of this response. */
export function isCutOff(response: Response): boolean {
  return cutOffResponses.has(response)
}
