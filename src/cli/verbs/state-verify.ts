import { verifyAuditChain } from '../../registry/verify-audit-chain.ts'
import type { VerbAction } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { toPrintable } from '../kit/printable.ts'
import { targetDocument, type TargetFlags } from '../kit/target.ts'
import { withExistingStore } from '../kit/with-store.ts'

interface VerifyFlags extends TargetFlags {
  readonly expect?: string
}

const EMPTY_VERIFICATION = { intact: true, entries: 0, head: '', brokenAt: null, holdsExpected: null, states: [] }

export const stateVerify: VerbAction<[VerifyFlags]> = async (cli, flags) => {
  const { terminal } = cli
  return withExistingStore(cli, flags, async (target, store) => {
    const verdict =
      store === null
        ? { ...EMPTY_VERIFICATION, ...(flags.expect !== undefined && { intact: false, holdsExpected: false }) }
        : await verifyAuditChain(store, flags.expect)
    if (terminal.json) terminal.printDocument({ ...targetDocument(target), ...verdict })
    else if (verdict.brokenAt !== null)
      terminal.print(`The audit log was tampered with at entry ${verdict.brokenAt.id}: ${verdict.brokenAt.why}`)
    else if (verdict.holdsExpected === false)
      terminal.print(
        'The audit log is intact but does not contain the expected head: it was rewritten, or it belongs to another store.',
      )
    else if (verdict.states.length > 0)
      terminal.print(
        'The audit log is intact, but it contradicts the stored checkpoints:',
        ...verdict.states.map(({ why }) => `  ${toPrintable(why)}`),
      )
    else
      terminal.print(
        `The audit log is intact: ${formatNumber(verdict.entries)} ${verdict.entries === 1 ? 'entry' : 'entries'}.`,
        ...(verdict.head === '' ? [] : [`head  ${verdict.head}`]),
      )
    return verdict.intact ? 0 : 1
  })
}
