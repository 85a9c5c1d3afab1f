import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Mounts {
  readonly folder: string
  /** An in-memory file system of this size. */
  small(megabytes: number): string
  /** The same files as in `folder`, read-only. */
  readOnly(folder: string): string
  remove(): void
}

/** Null where this process may not mount anything. */
export function openMounts(): Mounts | null {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-process-mount-'))
  const mounted: string[] = []
  const mount = (...parameters: string[]): string | null => {
    const place = join(folder, String(mounted.length))
    mkdirSync(place)
    if (spawnSync('mount', [...parameters, place]).status !== 0) return null
    mounted.unshift(place)
    return place
  }
  const small = (megabytes: number): string | null => mount('-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tidemark')
  const remove = (): void => {
    for (const place of mounted) spawnSync('umount', ['--lazy', place])
    rmSync(folder, { recursive: true, force: true })
  }
  if (small(1) === null) {
    remove()
    return null
  }
  return {
    folder,
    small: (megabytes) => small(megabytes)!,
    readOnly(from) {
      const place = mount('--bind', from)!
      spawnSync('mount', ['-o', 'remount,ro,bind', place])
      return place
    },
    remove,
  }
}
