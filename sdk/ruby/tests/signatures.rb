# frozen_string_literal: true

# Compares the signatures (sig/) with the program. A program of its own, because the gem rbs loads Bundler.
begin
  require "rbs"
rescue LoadError
  exit 77
end
require "pathname"
require_relative "../lib/postrider"
require_relative "../lib/postrider/delivery_method"

loader = RBS::EnvironmentLoader.new
loader.add(path: Pathname(__dir__).join("../sig"))
environment = RBS::Environment.from_loader(loader).resolve_type_names
builder = RBS::DefinitionBuilder.new(env: environment)
environment.class_decls.each_key { |name| builder.build_instance(name) if name.to_s.start_with?("::Postrider") }
builder.expand_alias(RBS::TypeName.new(name: :email, namespace: RBS::Namespace.parse("::Postrider::Types")))

classes = Postrider::Resources.constants.map { |name| Postrider::Resources.const_get(name) }
classes += [Postrider::Client, Postrider::Page, Postrider::Response, Postrider::WebhookEvent, Postrider::Dev,
            Postrider::DeliveryMethod, Postrider::WebhookEndpoint]
classes += Postrider.constants.map { |name| Postrider.const_get(name) }.select { |one| one.is_a?(Class) && one <= Postrider::Error }
hidden = %i[inspect to_json deconstruct_keys resolve_by]
missing = classes.uniq.flat_map do |type|
  namespace = RBS::Namespace.parse("::#{type.name.rpartition('::').first}")
  definition = builder.build_instance(RBS::TypeName.new(name: type.name.split("::").last.to_sym, namespace: namespace))
  unsigned = type.public_instance_methods(false) - hidden - definition.methods.keys
  unsigned -= %i[call page stream] if type == Postrider::Client
  unsigned.map { |method| "#{type}##{method}" }
end
abort "no signature: #{missing.join(', ')}" unless missing.empty?
