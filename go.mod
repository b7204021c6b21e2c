module github.com/etrun-go/etrun

go 1.26
