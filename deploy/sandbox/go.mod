// The sandbox is a module of its own so that `go test ./...` at the root needs
// neither Gitea nor minutes.
module playbook-bot/deploy/sandbox

go 1.26.0

require code.gitea.io/sdk/gitea v0.25.1

require go.yaml.in/yaml/v3 v3.0.6 // indirect

require (
	github.com/42wim/httpsig v1.2.4 // indirect
	github.com/davidmz/go-pageant v1.0.2 // indirect
	github.com/go-fed/httpsig v1.1.0 // indirect
	github.com/hashicorp/go-version v1.9.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	playbook-bot v0.0.0
)

replace playbook-bot => ../..
