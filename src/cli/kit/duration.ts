import { formatDuration } from '../../values/duration.ts'

export { formatDuration }

export function formatAgo(at: number, now: number): string {
  return at > now ? `in ${formatDuration(at - now)}` : now - at < 1_000 ? 'just now' : `${formatDuration(now - at)} ago`
}
