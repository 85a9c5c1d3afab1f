import { runCampaign, type CampaignOptions, type SimulationReport } from '../campaign.ts'
import type { WorldStoreFactory } from '../world-store-factory.ts'
import { VENDOR_FAULT_KINDS, type VendorSelection } from './vendor-config.ts'
import { runVendorWorld } from './vendor-world.ts'

/** Options of `simulateVendors`. */
export interface SimulateVendorsOptions extends CampaignOptions, VendorSelection {
  readonly store?: WorldStoreFactory
}

/** Simulates worlds in which the sources of known vendors read their simulators. */
export function simulateVendors(options: SimulateVendorsOptions): Promise<SimulationReport> {
  const { vendors, kinds, overrides, store } = options
  return runCampaign(options, VENDOR_FAULT_KINDS, (seed, only) =>
    runVendorWorld({ seed, only, vendors, kinds, overrides, store }),
  )
}
