import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Checkpoint } from '../checkpoint.ts'
import { ClientError } from '../client-error.ts'
import type { ReaderPosition } from '../reader-position.ts'

/**
 * Stores the position in a file, for one consumer. Writes are atomic: the new file is on disk before it replaces the
 * old one.
 */
export function fileCheckpoint(file: string): Checkpoint {
  return {
    async load() {
      const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null
        throw error
      })
      if (text === null) return null
      try {
        return JSON.parse(text) as ReaderPosition
      } catch (cause) {
        throw new ClientError('CHECKPOINT_INVALID', `${file} is not a checkpoint.`, { cause })
      }
    },
    async save(position) {
      await mkdir(dirname(file), { recursive: true })
      const draft = `${file}.draft`
      const handle = await open(draft, 'w', 0o600)
      try {
        await handle.writeFile(`${JSON.stringify(position)}\n`)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(draft, file)
      const folder = await open(dirname(file))
      await folder.sync().finally(() => folder.close())
    },
  }
}
