import { campaign, type CampaignOptions, type SimulationReport } from '../campaign.ts'
import type { OpenWorldStore } from '../world-store.ts'
import { VENDOR_FAULT_KINDS, type VendorChoice } from './vendor-config.ts'
import { runVendorWorld } from './vendor-world.ts'

export interface SimulateVendorsOptions extends CampaignOptions, VendorChoice {
  readonly store?: OpenWorldStore
}

/** Worlds in which the sources of known vendors read what plays those vendors. */
export function simulateVendors(options: SimulateVendorsOptions): Promise<SimulationReport> {
  const { vendors, kinds, overrides, store } = options
  return campaign(options, VENDOR_FAULT_KINDS, (seed, only) => runVendorWorld({ seed, only, vendors, kinds, overrides, store }))
}
