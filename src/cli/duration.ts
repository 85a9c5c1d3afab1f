import { duration } from '../values/duration.ts'

export { duration }

export function ago(at: number, now: number): string {
  return at > now ? `in ${duration(at - now)}` : now - at < 1_000 ? 'just now' : `${duration(now - at)} ago`
}
