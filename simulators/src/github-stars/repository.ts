import type { Fields } from '../kit/simulator.ts'

const API = 'https://api.github.com'
const REPOSITORY_URL_PATHS: Readonly<Record<string, string>> = {
  archive_url: '/{archive_format}{/ref}',
  assignees_url: '/assignees{/user}',
  blobs_url: '/git/blobs{/sha}',
  branches_url: '/branches{/branch}',
  collaborators_url: '/collaborators{/collaborator}',
  comments_url: '/comments{/number}',
  commits_url: '/commits{/sha}',
  compare_url: '/compare/{base}...{head}',
  contents_url: '/contents/{+path}',
  contributors_url: '/contributors',
  deployments_url: '/deployments',
  downloads_url: '/downloads',
  events_url: '/events',
  forks_url: '/forks',
  git_commits_url: '/git/commits{/sha}',
  git_refs_url: '/git/refs{/sha}',
  git_tags_url: '/git/tags{/sha}',
  hooks_url: '/hooks',
  issue_comment_url: '/issues/comments{/number}',
  issue_events_url: '/issues/events{/number}',
  issues_url: '/issues{/number}',
  keys_url: '/keys{/key_id}',
  labels_url: '/labels{/name}',
  languages_url: '/languages',
  merges_url: '/merges',
  milestones_url: '/milestones{/number}',
  notifications_url: '/notifications{?since,all,participating}',
  pulls_url: '/pulls{/number}',
  releases_url: '/releases{/id}',
  stargazers_url: '/stargazers',
  statuses_url: '/statuses/{sha}',
  subscribers_url: '/subscribers',
  subscription_url: '/subscription',
  tags_url: '/tags',
  teams_url: '/teams',
  trees_url: '/git/trees{/sha}',
}
const USER_URL_PATHS: Readonly<Record<string, string>> = {
  followers_url: '/followers',
  following_url: '/following{/other_user}',
  gists_url: '/gists{/gist_id}',
  starred_url: '/starred{/owner}{/repo}',
  subscriptions_url: '/subscriptions',
  organizations_url: '/orgs',
  repos_url: '/repos',
  events_url: '/events{/privacy}',
  received_events_url: '/received_events',
}

/** A repository with every field GitHub documents; the given ones replace the defaults. */
export function buildRepository(
  id: number,
  stamps: { readonly createdAt: string; readonly updatedAt: string },
  given: Fields,
): Fields {
  const { owner: login, name, ...rest } = given
  const fullName = `${String(login)}/${String(name)}`
  const home = `https://github.com/${fullName}`
  const stars = typeof given['stargazers_count'] === 'number' ? given['stargazers_count'] : 1
  return {
    id,
    node_id: `R_kgDO${id.toString(36)}`,
    name,
    full_name: fullName,
    private: false,
    owner: buildAccount(String(login), id + 1_000_000),
    html_url: home,
    description: null,
    fork: false,
    url: `${API}/repos/${fullName}`,
    ...expandPaths(`${API}/repos/${fullName}`, REPOSITORY_URL_PATHS),
    git_url: `git://github.com/${fullName}.git`,
    ssh_url: `git@github.com:${fullName}.git`,
    clone_url: `${home}.git`,
    svn_url: home,
    mirror_url: null,
    homepage: null,
    created_at: stamps.createdAt,
    updated_at: stamps.updatedAt,
    pushed_at: stamps.createdAt,
    size: 0,
    stargazers_count: stars,
    watchers_count: stars,
    watchers: stars,
    language: null,
    forks_count: 0,
    forks: 0,
    open_issues_count: 0,
    open_issues: 0,
    license: null,
    topics: [],
    has_issues: true,
    has_projects: true,
    has_downloads: true,
    has_wiki: true,
    has_pages: false,
    has_discussions: false,
    archived: false,
    disabled: false,
    allow_forking: true,
    is_template: false,
    visibility: given['private'] === true ? 'private' : 'public',
    default_branch: 'main',
    ...rest,
  }
}

export function buildAccount(login: string, id: number): Fields {
  return {
    login,
    id,
    node_id: `U_kgDO${id.toString(36)}`,
    avatar_url: `https://avatars.githubusercontent.com/u/${id}?v=4`,
    gravatar_id: '',
    url: `${API}/users/${login}`,
    html_url: `https://github.com/${login}`,
    ...expandPaths(`${API}/users/${login}`, USER_URL_PATHS),
    type: 'User',
    site_admin: false,
  }
}

function expandPaths(base: string, paths: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, base + path]))
}
