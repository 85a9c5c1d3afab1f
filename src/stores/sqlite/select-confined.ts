import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { SyncError, type SelectOptions, type SelectResult } from '../../contract/index.ts'
import { createQueryTooLongError } from '../kit/query-too-long-error.ts'
import type { SelectReply, SelectRequest } from './select-process.ts'

const HEAP_MB_MAX = 128

/** Runs a confined statement in a process of its own, which ends at the deadline whatever it does. */
export function selectConfined(file: string, sql: string, options: SelectOptions): Promise<SelectResult> {
  const { deadlineMs = 30_000 } = options
  const isCompiled = import.meta.url.endsWith('.js')
  const program = fileURLToPath(new URL(`./select-process.${isCompiled ? 'js' : 'ts'}`, import.meta.url))
  return new Promise((resolve, reject) => {
    const child = fork(program, {
      serialization: 'advanced',
      stdio: 'ignore',
      env: {},
      execArgv: [`--max-old-space-size=${HEAP_MB_MAX}`, ...(isCompiled ? [] : ['--import', 'jiti/register'])],
    })
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(createQueryTooLongError(deadlineMs))
    }, deadlineMs)
    child.once('message', (reply: SelectReply) => {
      if ('result' in reply) resolve(reply.result)
      else reject(new SyncError(reply.error.code, reply.error.message))
    })
    child.once('error', (cause) =>
      reject(new SyncError('STORE_FAILED', 'The process of the query cannot start.', { cause })),
    )
    child.once('exit', () => {
      clearTimeout(timer)
      reject(new SyncError('ARGUMENT_INVALID', 'The query needs too much memory. Select less.'))
    })
    child.send({ file, sql, options } satisfies SelectRequest)
  })
}
