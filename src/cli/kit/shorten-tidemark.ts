/** Shortens a tidemark for narrow screens, in UTC: the time if it is today, else the date. */
export function shortenTidemark(shown: string, now: number): string {
  const [, day, time] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(shown) ?? []
  if (day === undefined || time === undefined) return shown
  return day === new Date(now).toISOString().slice(0, 10) ? `${time}Z` : day
}
