import { SyncError } from '../../contract/index.ts'

/** Describes how a tap ended. `lastLine` is already redacted. */
export function toTapExitError(name: string, code: number, lastLine: string, action = ''): SyncError {
  const how =
    code === 127
      ? 'was not found, or a program it needs was not. Check `command`'
      : code === 126
        ? 'is not executable'
        : code >= 128
          ? `was terminated by a signal${code > 128 ? ` (${code - 128})` : ''}`
          : `exited with code ${code}`
  return new SyncError(
    'CONNECTOR_FAILED',
    `${name} ${action === '' ? '' : `${action} `}${how}${lastLine === '' ? '.' : `: ${lastLine}`}`,
  )
}
