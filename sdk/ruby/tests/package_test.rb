# frozen_string_literal: true

require "open3"
require "rubygems/package"
require "tmpdir"
require_relative "helper"

class PackageTest < Minitest::Test
  FOLDER = File.expand_path("..", __dir__)

  def test_the_gem_has_the_library_and_its_types
    skip "gem is missing" unless system("gem", "--version", out: File::NULL, err: File::NULL)
    Dir.mktmpdir do |directory|
      file = File.join(directory, "postrider.gem")
      # `--strict`: a warning is a failure.
      log, status = Open3.capture2e("gem", "build", "--strict", "postrider.gemspec", "--output", file, chdir: FOLDER)
      assert status.success?, log
      found = Gem::Package.new(file).contents
      assert_equal Dir.glob(["lib/**/*.rb", "sig/**/*.rbs"], base: FOLDER).sort, found.grep(/\A(lib|sig)\//).sort
      assert_equal %w[LICENSE README.md], found.grep_v(/\A(lib|sig)\//).sort
    end
  end
end
