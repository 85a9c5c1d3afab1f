/** For a screen on which every column counts: the time of today, the day of what is older; in UTC, as where it is told in full. */
export function shortenTidemark(shown: string, now: number): string {
  const [, day, time] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(shown) ?? []
  if (day === undefined || time === undefined) return shown
  return day === new Date(now).toISOString().slice(0, 10) ? `${time}Z` : day
}
