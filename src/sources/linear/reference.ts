import { AUTH_OPTION, HTTP_PACE, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'A personal API key, or OAuth with the scope `read`.',
  streams: [
    ['linear(options).attachments', 'replace', 'attachments of issues'],
    ['linear(options).comments', 'replace', 'comments'],
    ['linear(options).cycles', 'replace', 'cycles'],
    ['linear(options).documents', 'replace', 'documents'],
    ['linear(options).initiatives', 'replace', 'initiatives'],
    ['linear(options).issueLabels', 'replace', 'labels'],
    ['linear(options).issues', 'replace', 'issues'],
    ['linear(options).projectMilestones', 'replace', 'milestones of projects'],
    ['linear(options).projects', 'replace', 'projects'],
    ['linear(options).teams', 'replace', 'teams'],
    ['linear(options).users', 'replace', 'users, also disabled ones'],
    ['linear(options).workflowStates', 'replace', 'workflow states'],
    ['linear(options).tracked.<name>', 'backfill and delta', 'the same; in a manifest with `mode: incremental`'],
  ],
  lag: '15 seconds.',
  retention: 'No limit: a cycle reads the whole list, or everything that changed since the last one.',
  deletions:
    'By the sweep of a list or backfill. Archived records count as deleted, unless `includeArchived` is set; the delta notices them.',
  pace: HTTP_PACE,
  groups: [
    {
      title: 'linear(options)',
      file: 'linear/source.ts',
      name: 'LinearOptions',
      members: {
        apiKey: secretOption('A personal API key'),
        auth: AUTH_OPTION,
        baseUrl: ['`https://api.linear.app`', 'Base URL of the API.'],
        limit: ['100', 'Records of a page, 1 to 250.'],
        includeArchived: ['false', 'Keeps archived records as rows, with `archivedAt`.'],
        since: ['everything', 'A date or RFC 3339: only records that changed at or after it, also older ones.'],
      },
    },
  ],
} satisfies SourceReference
