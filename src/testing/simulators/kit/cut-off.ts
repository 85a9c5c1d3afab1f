const cutOffResponses = new WeakSet<Response>()

/** The connection is to break after this body: behind a socket it is destroyed, behind fetch the body ends in an error. */
export function markCutOff(response: Response): Response {
  cutOffResponses.add(response)
  return response
}

export function isCutOff(response: Response): boolean {
  return cutOffResponses.has(response)
}
