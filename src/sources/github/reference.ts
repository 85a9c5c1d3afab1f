import { AUTH_OPTION, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'A token that may read the repositories and their issues.',
  streams: [
    ['github(options).repositories', 'replace', 'repositories of the owner'],
    ['github(options).issues', 'replace', 'issues of all of them'],
    [
      "github(options).repository('owner/name').issues",
      'backfill and delta',
      'issues and pull requests of one repository',
    ],
    ['….issueComments', 'backfill and delta', 'comments on issues and pull requests'],
    ['….reviewComments', 'backfill and delta', 'comments on the code of pull requests'],
    ['….pullRequests', 'backfill and delta', 'pull requests'],
    ['….commits', 'replace', 'commits of the default branch'],
    ['….labels', 'replace', 'labels'],
    ['….milestones', 'replace', 'milestones'],
    ['….releases', 'replace', 'releases'],
    ['….stargazers', 'replace', 'users who starred it, with the time'],
    ['….workflowRuns', 'replace', 'runs of workflows'],
  ],
  lag: '15 seconds.',
  retention: 'No limit: a cycle reads the whole list, or everything that changed since the last one.',
  deletions: 'By the sweep of a list or backfill.',
  pace: 'By the budget in GraphQL responses (`rateLimit`): requests are spread until it resets. REST requests are not paced. Waits as both limits of GitHub require.',
  groups: [
    {
      title: 'github(options)',
      file: 'github/source.ts',
      name: 'GithubOptions',
      members: {
        token: secretOption('A token'),
        auth: AUTH_OPTION,
        baseUrl: ['`https://api.github.com`', 'Of an Enterprise server: `https://github.example.com/api`.'],
        owner: ['the owner of the token', 'A user or an organization.'],
        since: [
          'everything',
          'A date or RFC 3339, for the streams of a repository with a delta: only records that changed at or after it, also older ones. For commits, those of that time.',
        ],
        recordsPerPage: ['100', 'Records in a request for a list of one repository, 2 to 100.'],
        repositoriesPerPage: ['20', 'Repositories in a request for issues, 1 to 100.'],
      },
    },
  ],
} satisfies SourceReference
