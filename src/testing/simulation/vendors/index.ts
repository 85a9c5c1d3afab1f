export { simulateVendors } from './simulate-vendors.ts'
export type { SimulateVendorsOptions } from './simulate-vendors.ts'
