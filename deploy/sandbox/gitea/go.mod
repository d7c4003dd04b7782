// This module exists to build Gitea and nothing else. It is apart from the
// sandbox's own module so that our dependencies do not raise Gitea's: what is
// built here is what the Gitea project released.
module playbook-bot/deploy/sandbox/gitea

go 1.26.2

require code.gitea.io/gitea v1.26.0

require modernc.org/sqlite v1.62.0 // indirect

// Needs no C compiler; see sqlite3/sqlite3.go.
replace github.com/mattn/go-sqlite3 => ./sqlite3

// A main module's replace lines are not inherited: these repeat, word for
// word, those of Gitea v1.26.0's own go.mod.
replace (
	github.com/Azure/azure-sdk-for-go/sdk/azcore => github.com/Azure/azure-sdk-for-go/sdk/azcore v1.19.0
	github.com/Azure/azure-sdk-for-go/sdk/storage/azblob => github.com/Azure/azure-sdk-for-go/sdk/storage/azblob v1.6.2
	github.com/jaytaylor/html2text => github.com/Necoro/html2text v0.0.0-20250804200300-7bf1ce1c7347
	github.com/microsoft/go-mssqldb => github.com/microsoft/go-mssqldb v1.9.7
	github.com/nektos/act => gitea.com/gitea/act v0.261.10
	github.com/urfave/cli/v3 => github.com/urfave/cli/v3 v3.4.1
	go.yaml.in/yaml/v4 => go.yaml.in/yaml/v4 v4.0.0-rc.3
)
