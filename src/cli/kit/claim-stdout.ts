import { Writable } from 'node:stream'
import { maskSecrets } from '../../redaction/known-secrets.ts'
import type { OutputStream } from './terminal.ts'

export interface ClaimedStdout {
  /** For documents and text. */
  readonly stream: OutputStream
  /** For a protocol. */
  readonly writable: Writable
}

/**
 * Reserves standard output for the result of the command: after this call only the returned streams write to it.
 * Other output, such as `console.log` in a worker, goes to standard error with known secrets masked.
 */
export function claimStdout({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>): ClaimedStdout {
  const write = stdout.write.bind(stdout)
  const divert = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8')
    return stderr.write(
      maskSecrets(text),
      rest.find((given) => typeof given === 'function') as (() => void) | undefined,
    )
  }
  stdout.write = divert as typeof stdout.write
  globalThis.console = new console.Console(
    new Writable({ decodeStrings: false, write: (chunk: string, _, done) => void divert(chunk, done) }),
  )
  return {
    stream: {
      write: (text, done) => write(text, done),
      on: (event, listener) => stdout.on(event, listener),
      get isTTY() {
        return stdout.isTTY
      },
      get columns() {
        return stdout.columns
      },
      get rows() {
        return stdout.rows
      },
      ...(typeof stdout.getWindowSize === 'function' && { getWindowSize: () => stdout.getWindowSize() }),
    },
    writable: new Writable({ write: (chunk: Buffer, _, done) => void write(chunk, done) }),
  }
}
