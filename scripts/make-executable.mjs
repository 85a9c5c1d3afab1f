// tsc writes the command's file without the right to run it.
import { chmodSync, existsSync } from 'node:fs'

if (existsSync('dist/cli/main.js')) chmodSync('dist/cli/main.js', 0o755)
