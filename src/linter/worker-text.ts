import { FAULTS, createFinding, type FaultCode, type Finding } from './findings.ts'

/** What the file itself says. */
export interface WorkerText {
  readonly findings: readonly Finding[]
  /** Some code in it makes deletions, or leaves them to a strategy that does. */
  readonly mentionsDeletes: boolean
  /** `tidemark-ignore <sync>: <word>, <word>`, in a comment. */
  isIgnored(sync: string, word: FaultCode): boolean
}

const SECRET_PATTERNS = [
  /\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{8,}/, /\bgh[pousr]_[A-Za-z0-9]{20,}/, /\bgithub_pat_\w{20,}/, /\bxox[abprs]-[A-Za-z0-9-]{10,}/, /\bAKIA[A-Z0-9]{16}\b/,
  /\bpat-[a-z]{2}\d-[0-9a-f-]{30,}/, /\blin_api_[A-Za-z0-9]{20,}/, /\bBearer [A-Za-z0-9_\-.=]{16,}/,
  /\b(?:password|secret|token|api_?key)['"]?\s*[:=]\s*['"](?=[^'"]*\d)[A-Za-z0-9_\-+/=.]{20,}['"]/i,
]

export function readWorkerText(text: string): WorkerText {
  const lines = text.split('\n').flatMap((line, index) => (SECRET_PATTERNS.some((pattern) => pattern.test(line)) ? [index + 1] : []))
  const ignored = [...text.matchAll(/tidemark-ignore ([\w./-]+): ([a-z-]+(?:, *[a-z-]+)*)/g)].map(([, sync, words]) => ({ sync: sync!, words: words!.split(/, */) }))
  return {
    findings: lines.length === 0 ? [] : [createFinding('secret-in-code', `Line ${lines.slice(0, 3).join(', ')} of the worker holds what looks like a secret.`)],
    mentionsDeletes: /['"`]delete['"`]|\b(?:flipFlop|streams)\b/.test(stripComments(text)),
    isIgnored: (sync, word) => word in FAULTS && ignored.some((one) => one.sync === sync && one.words.includes(word)),
  }
}

function stripComments(code: string): string {
  return code.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '')
}
