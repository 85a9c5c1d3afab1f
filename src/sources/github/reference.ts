import { AUTH_OPTION, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'A token that may read the repositories and their issues.',
  streams: [
    ['github(options).repositories', 'replace', 'repositories of the owner'],
    ['github(options).issues', 'replace', 'issues of all of them'],
  ],
  lag: '15 seconds.',
  retention: 'No limit: every cycle reads the whole list.',
  deletions: 'Yes, by the sweep.',
  pace: 'By the budget in GraphQL responses (`rateLimit`): requests are spread until it resets. Waits as both limits of GitHub require.',
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
        repositoriesPerPage: ['20', 'Repositories in a request for issues, 1 to 100.'],
      },
    },
  ],
} satisfies SourceReference
