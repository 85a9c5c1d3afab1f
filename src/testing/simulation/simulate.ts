import { campaign, type CampaignOptions, type SimulationReport } from './campaign.ts'
import { FAULT_KINDS } from './faults.ts'
import { runWorld, type WorldOptions } from './world.ts'
import type { WorldKind } from './world-config.ts'
import type { OpenWorldStore } from './world-store.ts'

export interface SimulateOptions extends CampaignOptions {
  /** Only these kinds, in turn; drawn by the seed when absent. */
  readonly worlds?: readonly WorldKind[]
  readonly overrides?: WorldOptions['overrides']
  readonly store?: OpenWorldStore
}

/** Worlds of an adversarial source. */
export function simulate(options: SimulateOptions): Promise<SimulationReport> {
  const { firstSeed = 1, worlds, overrides, store } = options
  return campaign(options, FAULT_KINDS, (seed, only) => {
    const kind = worlds?.[(seed - firstSeed) % worlds.length]
    return runWorld({ seed, ...(kind && { kind }), ...(overrides && { overrides }), ...(store && { store }), ...(only && { only }) })
  })
}

export type { Failure, SimulationReport, Verdict } from './campaign.ts'
