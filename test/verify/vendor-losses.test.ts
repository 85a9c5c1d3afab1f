import { describe, expect, test } from 'vitest'
import { VENDOR_STREAMS } from '../../src/testing/simulation/vendors/vendor-streams.ts'
import { runLossWorld } from './vendor-losses.ts'

/** `npm run campaign:verify` runs a thousand worlds per vendor. */
const WORLDS = Number(process.env['TIDEMARK_VERIFY_WORLDS'] ?? 2)
const FIRST_SEED = Number(process.env['TIDEMARK_FIRST_SEED'] ?? 1)

describe('a sync that loses changes silently', () => {
  test.each(VENDOR_STREAMS.map((stream) => [`${stream.vendor} ${stream.name}`, stream] as const))(
    '%s: a verification finds every loss, repairs it, and reports nothing else',
    async (name, stream) => {
      let [planted, requests, rows] = [0, 0, 0]
      for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
        const result = await runLossWorld(stream, seed)
        expect({ seed, violations: result.violations }).toEqual({ seed, violations: [] })
        planted += result.planted.length
        requests += result.requests
        rows += result.rows
      }
      if (process.env['TIDEMARK_VERIFY_WORLDS'] !== undefined)
        console.info(`${name}: ${WORLDS} worlds, ${planted} losses found, ${rows} rows, ${requests} requests`)
    },
    WORLDS * 20_000,
  )
})
