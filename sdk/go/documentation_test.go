package postrider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// checkProgram compiles files that use this package as an application does, with go vet or go run.
func checkProgram(t *testing.T, words []string, files map[string]string, environment ...string) string {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	files["go.mod"] = "module example.com/application\n\ngo 1.19\n\nrequire github.com/postrider/postrider-go v0.0.0\n\nreplace github.com/postrider/postrider-go => " + here + "\n"
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("go", words...)
	command.Dir = folder
	command.Env = append(os.Environ(), append(environment, "GOFLAGS=-mod=mod", "GOPROXY=off")...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return string(output)
}

func TestTheSnippetsOfTheReferenceCompile(t *testing.T) {
	text, err := os.ReadFile("../snippets.json")
	if err != nil {
		t.Skip(err)
	}
	var snippets map[string]struct{ Go string }
	if err := json.Unmarshal(text, &snippets); err != nil {
		t.Fatal(err)
	}
	var program bytes.Buffer
	program.WriteString("package application\n\nimport (\n\t\"context\"\n\n\t\"github.com/postrider/postrider-go\"\n)\n\n")
	for name, snippet := range snippets {
		formatted, err := format.Source([]byte(snippet.Go))
		if err != nil || string(formatted) != snippet.Go {
			t.Errorf("gofmt changes %s: %v\n%s", name, err, formatted)
		}
		fmt.Fprintf(&program, "func %s(ctx context.Context, client *postrider.Client) (any, error) {\n%s\nreturn result, err\n}\n\n", name, snippet.Go)
	}
	checkProgram(t, []string{"vet", "."}, map[string]string{"application.go": program.String()})
}

func readmeExamples(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples []string
	for _, found := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(text, -1) {
		examples = append(examples, string(found[1]))
	}
	return examples
}

func TestTheExamplesOfTheReadmeCompile(t *testing.T) {
	imports := map[string]string{
		"context.": "context", "errors.": "errors", "fmt.": "fmt", "http.": "net/http", "log.": "log", "os.": "os", "time.": "time",
		"postrider.": "github.com/postrider/postrider-go",
	}
	files := map[string]string{}
	for i, example := range readmeExamples(t) {
		formatted, err := format.Source([]byte(example))
		if err != nil || string(formatted) != example {
			t.Errorf("gofmt changes example %d: %v\n%s", i, err, formatted)
		}
		if strings.HasPrefix(example, "package ") {
			continue
		}
		body := fmt.Sprintf("func example%d(ctx context.Context, client *postrider.Client, params *postrider.SendEmailParams) {\n%s}\n", i, example)
		program := "package application\n\n"
		for used, path := range imports {
			if strings.Contains(body, used) {
				program += fmt.Sprintf("import %q\n", path)
			}
		}
		files[fmt.Sprintf("example%d.go", i)] = program + body
	}
	checkProgram(t, []string{"vet", "."}, files)
}

func TestTheFirstExampleOfTheReadmeSends(t *testing.T) {
	server := serve(t, answers(200, `{"id":"msg_1","status":"sent"}`))
	output := checkProgram(t, []string{"run", "."}, map[string]string{"main.go": readmeExamples(t)[0]}, "POSTRIDER_API_KEY="+testKey, "POSTRIDER_BASE_URL="+server.URL)
	if strings.TrimSpace(output) != "msg_1 sent" || server.requests[0].Header.Get("User-Agent") != "postrider-go/"+Version {
		t.Fatal(output)
	}
}
