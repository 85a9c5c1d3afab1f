import { FAULTS, createFinding, type FaultCode, type Finding } from './findings.ts'

/** Facts from the text of the worker file. */
export interface WorkerText {
  readonly findings: readonly Finding[]
  /** The code creates deletions, or uses a strategy that does. */
  readonly mentionsDeletes: boolean
  /** A comment `tidemark-ignore <sync>: <finding>, <finding>` suppresses the finding. */
  isIgnored(sync: string, code: FaultCode): boolean
}

const SECRET_PATTERNS = [
  /\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{8,}/,
  /\bgh[pousr]_[A-Za-z0-9]{20,}/,
  /\bgithub_pat_\w{20,}/,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/,
  /\bAKIA[A-Z0-9]{16}\b/,
  /\bpat-[a-z]{2}\d-[0-9a-f-]{30,}/,
  /\blin_api_[A-Za-z0-9]{20,}/,
  /\bBearer [A-Za-z0-9_\-.=]{16,}/,
  /\b(?:password|secret|token|api_?key)['"]?\s*[:=]\s*['"](?=[^'"]*\d)[A-Za-z0-9_\-+/=.]{20,}['"]/i,
]

export function readWorkerText(text: string): WorkerText {
  const lines = text
    .split('\n')
    .flatMap((line, index) => (SECRET_PATTERNS.some((pattern) => pattern.test(line)) ? [index + 1] : []))
  const ignored = [...text.matchAll(/tidemark-ignore ([\w./-]+): ([a-z-]+(?:, *[a-z-]+)*)/g)].map(
    ([, sync = '', codes = '']) => ({ sync, codes: codes.split(/, */) }),
  )
  return {
    findings:
      lines.length === 0
        ? []
        : [
            createFinding(
              'secret-in-code',
              `Line ${lines.slice(0, 3).join(', ')} of the worker contains what looks like a secret.`,
            ),
          ],
    mentionsDeletes: /['"`]delete['"`]|\b(?:flipFlop|streams)\b/.test(stripComments(text)),
    isIgnored: (sync, code) => code in FAULTS && ignored.some((one) => one.sync === sync && one.codes.includes(code)),
  }
}

function stripComments(code: string): string {
  return code.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '')
}
