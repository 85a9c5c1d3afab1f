import { verifyTrail } from '../registry/trail.ts'
import type { Act } from './cli.ts'
import { grouped } from './counts.ts'
import { printable } from './printable.ts'
import { targetDocument, type TargetFlags } from './target.ts'
import { reading } from './with-store.ts'

interface VerifyFlags extends TargetFlags {
  readonly expect?: string
}

const EMPTY = { intact: true, entries: 0, head: '', brokenAt: null, holdsExpected: null, states: [] }

export const stateVerify: Act<[VerifyFlags]> = async (cli, flags) => {
  const { terminal } = cli
  return reading(cli, flags, async (target, store) => {
    const verdict = store === null ? { ...EMPTY, ...(flags.expect !== undefined && { intact: false, holdsExpected: false }) } : await verifyTrail(store, flags.expect)
    if (terminal.json) terminal.document({ ...targetDocument(target), ...verdict })
    else if (verdict.brokenAt !== null) terminal.print(`The audit was tampered with at entry ${verdict.brokenAt.id}: ${verdict.brokenAt.why}`)
    else if (verdict.holdsExpected === false) terminal.print(`The chain is whole, but the head you expect is not in it: it was written anew, or belongs to another store.`)
    else if (verdict.states.length > 0) terminal.print('The audit is whole, but it contradicts what is stored:', ...verdict.states.map(({ why }) => `  ${printable(why)}`))
    else terminal.print(`The audit is whole: ${grouped(verdict.entries)} ${verdict.entries === 1 ? 'entry' : 'entries'}.`, ...(verdict.head === '' ? [] : [`head  ${verdict.head}`]))
    return verdict.intact ? 0 : 1
  })
}
