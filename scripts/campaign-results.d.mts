/** The totals of one campaign. */
export interface CampaignTotal {
  readonly name: string
  readonly worlds: number
  readonly faults: number
  readonly violations: number
}

/** One recorded run. */
export interface CampaignRun {
  readonly date: string
  readonly minutes: number
  readonly cores: number
  readonly nextSeed: number
  readonly campaigns: readonly CampaignTotal[]
}

export function addTotals(name: string, parts: readonly Omit<CampaignTotal, 'name'>[]): CampaignTotal
export function nextSeedOf(runs: readonly CampaignRun[]): number
export function totalsOf(runs: readonly CampaignRun[]): CampaignTotal[]
export function renderTable(runs: readonly CampaignRun[]): string
export function updatePage(page: string, runs: readonly CampaignRun[]): string
