import type { Fields } from '../kit/simulator.ts'
import { required } from '../kit/required.ts'

export interface Market {
  readonly id: string
  readonly altname: string
  readonly wsname: string
  readonly base: string
  readonly quote: string
}

export const MARKETS: readonly Market[] = [
  { id: 'XXBTZUSD', altname: 'XBTUSD', wsname: 'XBT/USD', base: 'XXBT', quote: 'ZUSD' },
  { id: 'XETHZUSD', altname: 'ETHUSD', wsname: 'ETH/USD', base: 'XETH', quote: 'ZUSD' },
  { id: 'ADAUSD', altname: 'ADAUSD', wsname: 'ADA/USD', base: 'ADA', quote: 'ZUSD' },
]

const ASSETS: Readonly<
  Record<string, { readonly altname: string; readonly decimals: number; readonly display_decimals: number }>
> = {
  XXBT: { altname: 'XBT', decimals: 10, display_decimals: 5 },
  XETH: { altname: 'ETH', decimals: 10, display_decimals: 5 },
  ADA: { altname: 'ADA', decimals: 8, display_decimals: 6 },
  ZUSD: { altname: 'USD', decimals: 4, display_decimals: 2 },
}

/** A pair has three names: XXBTZUSD, XBTUSD and XBT/USD. */
export function findMarket(name: string): Market | undefined {
  const asked = name.toUpperCase()
  return MARKETS.find(({ id, altname, wsname }) => [id, altname, wsname].includes(asked))
}

/** An asset has two names: XXBT and XBT. */
export function findAsset(name: string): string | undefined {
  const asked = name.toUpperCase()
  return Object.keys(ASSETS).find((id) => id === asked || required(ASSETS[id], 'ASSETS[id]').altname === asked)
}

export function renderAssets(): Fields {
  return Object.fromEntries(
    Object.entries(ASSETS).map(([id, asset]) => [id, { aclass: 'currency', ...asset, status: 'enabled' }]),
  )
}

export function renderAssetPairs(): Fields {
  return Object.fromEntries(
    MARKETS.map(({ id, ...market }) => [
      id,
      {
        ...market,
        aclass_base: 'currency',
        aclass_quote: 'currency',
        lot: 'unit',
        cost_decimals: 5,
        pair_decimals: 1,
        lot_decimals: 8,
        lot_multiplier: 1,
        leverage_buy: [],
        leverage_sell: [],
        fees: [[0, 0.4]],
        fees_maker: [[0, 0.25]],
        fee_volume_currency: 'ZUSD',
        margin_call: 80,
        margin_stop: 40,
        ordermin: '0.0001',
        costmin: '0.5',
        tick_size: '0.1',
        status: 'online',
      },
    ]),
  )
}
