// tsc writes the command's file without the executable bit.
import { chmodSync, existsSync } from 'node:fs'

if (existsSync('dist/cli/main.js')) chmodSync('dist/cli/main.js', 0o755)
