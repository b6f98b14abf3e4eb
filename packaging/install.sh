#!/bin/sh
# Installs postrider: the Debian package on Debian and Ubuntu, otherwise the binary with its systemd unit.
#
#   sh install.sh                 install the newest release
#   sh install.sh --dry-run       print what would be done, and change nothing
#   sh install.sh --version 1.2.3 install this release
#   sh install.sh --from URL      another place of releases: https://, or a directory of this machine
#   sh install.sh --key KEY       another minisign public key
#
# It verifies the signature of SHA256SUMS with minisign, and the checksum of what it installs. It never starts the
# server, which needs a configuration first.
#
# Everything is in one function that is called on the last line: a download that breaks off runs nothing.

main() {
    set -eu
    # `packaging/release` writes the place and the key of the release here.
    from='@RELEASES@'
    key='@PUBLIC_KEY@'
    version=latest
    dry_run=no
    while [ $# -gt 0 ]; do
        case $1 in
        --dry-run) dry_run=yes ;;
        --version | --from | --key)
            [ $# -ge 2 ] || fail "$1 needs a value"
            case $1 in
            --version) version=$2 ;;
            --from) from=$2 ;;
            --key) key=$2 ;;
            esac
            shift
            ;;
        *) fail "unknown option $1: see the first lines of this script" ;;
        esac
        shift
    done
    case $from in
    @*) fail "this script belongs to no release: name the place of the releases with --from, and the key with --key" ;;
    esac

    [ "$(uname -s)" = Linux ] || fail "postrider runs on Linux; this is $(uname -s). Use the container image or a virtual machine."
    case $(uname -m) in
    x86_64) architecture=amd64 ;;
    aarch64 | arm64) architecture=arm64 ;;
    *) fail "there is no package for $(uname -m): build it with cargo build --release" ;;
    esac
    kind=$(package_kind)
    [ "$dry_run" = yes ] || [ "$(id -u)" -eq 0 ] || fail "run this as root, for example with sudo; --dry-run shows what it does"

    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM

    place=$from/$version
    fetch "$place/SHA256SUMS" "$work/SHA256SUMS"
    fetch "$place/SHA256SUMS.minisig" "$work/SHA256SUMS.minisig"
    verify_signature
    # The name has the version: a mirror cannot give an older release for the one that was named.
    wanted=_$architecture.$kind
    if [ "$version" != latest ]; then
        wanted=postrider_$version$wanted
    fi
    file=$(awk -v wanted="$wanted" 'substr($2, length($2) - length(wanted) + 1) == wanted { print $2; exit }' "$work/SHA256SUMS")
    [ -n "$file" ] || fail "the release at $place has no package of $version for $architecture ($kind)"
    case $file in
    */* | -*) fail "SHA256SUMS has the unsafe name $file" ;;
    esac
    fetch "$place/$file" "$work/$file"
    (cd "$work" && grep -F "  $file" SHA256SUMS | sha256sum --check --quiet -) || fail "the checksum of $file is wrong"
    say "verified $file"

    case $kind in
    deb) run apt-get install -y "$work/$file" ;;
    tar.gz) install_archive "$work/$file" ;;
    esac
    if [ "$dry_run" = yes ]; then
        say "nothing was changed"
    else
        say "installed $(postrider --version). Next: run postrider setup as root; it leads to a running server and a test email"
    fi
}

# The kind of package for this distribution.
package_kind() {
    # shellcheck disable=SC1091
    like=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${ID_LIKE:-}")
    case " $like " in
    *" debian "* | *" ubuntu "*) echo deb ;;
    *) echo tar.gz ;;
    esac
}

verify_signature() {
    if ! command -v minisign >/dev/null; then
        if [ "$kind" = deb ]; then
            run apt-get install -y --no-install-recommends minisign
        fi
        if ! command -v minisign >/dev/null; then
            [ "$dry_run" = yes ] || fail "minisign is needed to verify the release: install it, then run this again"
            say "would verify the signature of SHA256SUMS"
            return 0
        fi
    fi
    minisign -V -q -P "$key" -m "$work/SHA256SUMS" -x "$work/SHA256SUMS.minisig" ||
        fail "the signature of SHA256SUMS is wrong: this release does not come from postrider's authors"
}

# Installs the binary and the unit on distributions without a package.
install_archive() {
    tar -xzf "$1" -C "$work" --no-same-owner
    run install -D -m 755 "$work/postrider/postrider" /usr/bin/postrider
    run install -D -m 644 "$work/postrider/postrider.service" /etc/systemd/system/postrider.service
    run install -D -m 644 "$work/postrider/postrider.toml" /usr/share/doc/postrider/examples/postrider.toml
    if [ -d /run/systemd/system ]; then
        run systemctl daemon-reload
    fi
}

fetch() { # address, file
    case $1 in
    https://*) curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location --output "$2" "$1" ;;
    /* | ./*) cp "$1" "$2" ;;
    *) fail "$1 is neither an https:// address nor a directory" ;;
    esac || fail "cannot fetch $1"
}

run() {
    if [ "$dry_run" = yes ]; then
        echo "would run: $*"
    else
        "$@"
    fi
}

say() { echo "postrider: $*"; }

fail() {
    echo "postrider: $*" >&2
    exit 1
}

main "$@"
