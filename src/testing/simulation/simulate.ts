import { runCampaign, type CampaignOptions, type SimulationReport } from './campaign.ts'
import { FAULT_KINDS } from './fault-injector.ts'
import { runWorld, type WorldOptions } from './world.ts'
import type { WorldKind } from './world-config.ts'
import type { WorldStoreFactory } from './world-store-factory.ts'

/** Options of `simulate`. */
export interface SimulateOptions extends CampaignOptions {
  /** Only these kinds, in turn; drawn by the seed when absent. */
  readonly worlds?: readonly WorldKind[]
  readonly overrides?: WorldOptions['overrides']
  readonly store?: WorldStoreFactory
}

/** Simulates worlds of an adversarial source. */
export function simulate(options: SimulateOptions): Promise<SimulationReport> {
  const { firstSeed = 1, worlds, overrides, store } = options
  return runCampaign(options, FAULT_KINDS, (seed, only) => {
    const kind = worlds?.[(seed - firstSeed) % worlds.length]
    return runWorld({
      seed,
      ...(kind && { kind }),
      ...(overrides && { overrides }),
      ...(store && { store }),
      ...(only && { only }),
    })
  })
}

export type { SimulationFailure, SimulationReport, WorldResult } from './campaign.ts'
