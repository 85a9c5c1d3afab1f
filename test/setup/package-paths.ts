import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackage, ROOT } from '../cli/package.ts'

/**
 * `paths` for a tsconfig: each entry point of the package, with the declarations that are published. The compiler reads
 * them in a fraction of the time that it takes to check the sources.
 */
export function packagePaths(): Record<string, string[]> {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { types: string }>
  }
  const folder = buildPackage()
  return Object.fromEntries([
    ...Object.entries(exports).flatMap(([name, target]) =>
      typeof target === 'string' ? [] : [[join('tidemark', name), [join(folder, target.types)]]],
    ),
    ['@tidemark/simulators', [join(ROOT, 'simulators/src/index.ts')]],
  ])
}
