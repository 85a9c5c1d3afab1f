import { hash } from 'node:crypto'

/** A code challenge of RFC 7636. */
export function createCodeChallenge(verifier: string): string {
  return hash('sha256', verifier, 'base64url')
}
