// The results of campaigns: docs/explanation/campaigns.json, and their table in docs/explanation/guarantees.md.

/**
 * @typedef {{ name: string, worlds: number, faults: number, violations: number }} CampaignTotal
 * @typedef {{ date: string, minutes: number, cores: number, nextSeed: number, campaigns: CampaignTotal[] }} CampaignRun
 */

/** The table begins and ends after these lines. */
const BEGIN = '<!-- campaigns: npm run campaign -->'
const END = '<!-- /campaigns -->'

/** Adds up parts of one campaign that ran beside or after each other. */
export function addTotals(name, parts) {
  const sum = (field) => parts.reduce((total, part) => total + part[field], 0)
  return { name, worlds: sum('worlds'), faults: sum('faults'), violations: sum('violations') }
}

/** The first seed that no earlier run has used. */
export function nextSeedOf(runs) {
  return Math.max(1, ...runs.map(({ nextSeed }) => nextSeed))
}

/** The totals of all runs, by campaign, in the order of their first run. */
export function totalsOf(runs) {
  const names = [...new Set(runs.flatMap(({ campaigns }) => campaigns.map(({ name }) => name)))]
  return names.map((name) =>
    addTotals(
      name,
      runs.flatMap(({ campaigns }) => campaigns.filter((campaign) => campaign.name === name)),
    ),
  )
}

/** The table of all runs. */
export function renderTable(runs) {
  const minutes = runs.reduce((sum, run) => sum + run.minutes * run.cores, 0)
  const format = (count) => count.toLocaleString('en-US')
  if (runs.length === 0) return 'No run is recorded yet.'
  return [
    `${runs.length} ${runs.length === 1 ? 'run' : 'runs'}, ${format(Math.round(minutes))} minutes of one core, the last on ${runs.at(-1).date}.`,
    '',
    '| campaign | worlds | faults | violations |',
    '|---|---|---|---|',
    ...totalsOf(runs).map(
      ({ name, worlds, faults, violations }) =>
        `| ${name} | ${format(worlds)} | ${format(faults)} | ${format(violations)} |`,
    ),
  ].join('\n')
}

/** The page with the table of these runs. */
export function updatePage(page, runs) {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`The page has no ${BEGIN} … ${END}.`)
  return `${page.slice(0, begin + BEGIN.length)}\n\n${renderTable(runs)}\n\n${page.slice(end)}`
}
